/* What the driver of workbooks (XLSX) mistakes or leaves out; see workbook.c. */
#pragma GCC visibility push(hidden)

/* Put into the answer which formats the cells of a workbook have, how many of its formulas have no result and how many of
 * its characters are escaped; `ok` is false if another program must look. */
void examine_workbook(const char *file);

#pragma GCC visibility pop
