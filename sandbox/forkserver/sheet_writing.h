/* Writes a workbook; see sheet_writing.c. */
#pragma once

/* The command; see session.c. */
void write_sheets(char **at);
