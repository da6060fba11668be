/* What the driver of workbooks (XLSX) mistakes or leaves out; see workbook.c. */
#include <stddef.h>

/* Put into the answer which formats the cells of a workbook have, how many of its formulas have no result and how many of
 * its characters are escaped; `ok` is false if another program must look. */
void examine_workbook(const char *file);

/* The text of a part of a workbook below xl/, which ends with a zero; NULL if there is none, it is long or in UTF-16. */
char *text_of_part(const char *file, const char *part, size_t *size);
