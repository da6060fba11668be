/* What the rows of the sheets of an ODS workbook hold that its driver does not tell; see opendocument_rows.c. */
#pragma once
#include "sheet_rows.h"

/* Where the rows are that are examined. */
struct ods_place {
    int row, times, column;
};

/* Examine a piece of the cells of a workbook, which ends before a cell or the like. */
void examine_ods_rows(struct sheet_rows *rows, struct ods_place *place, const char *at, const char *end);
