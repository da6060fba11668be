/* Other formats of cells in a copy of a workbook; see workbook_styles.c. */
/* Copy a workbook with other codes of formats: `codes` are pairs of a code as it is written and the one in its place, which
 * has no characters that XML reserves. Returns 0 if that fails. */
int copy_with_formats(const char *file, const char *copy, char **codes);
