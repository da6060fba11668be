/* Counts the cells of a sheet. The drivers take empty texts for no values. */
#include <math.h>
#include <string.h>

#include "sheets.h"

void begin_sheet(struct sheet *sheet, struct found_layer *layer)
{
    int is_known = layer->counted.count || layer->counted.features;
    *sheet = (struct sheet){.layer = layer, .is_odd = sheet->is_odd || is_known};
}

void begin_row(struct sheet *sheet)
{
    sheet->layer->counted.features += sheet->rows++ > 0;
    sheet->empty_rows++;
}

static int is_heading(struct sheet *sheet, int column, enum cell kind, struct text_read *text)
{
    return kind == TEXT && text->size && is_kept(text) && sheet->layer->counted.count == column &&
           column_named(sheet->layer, text->start) == sheet->layer->counted.columns + column;
}

static void count_number(struct sheet *sheet, struct counted_column *column, struct text_read *text)
{
    char *end = text->start;
    column->filled++;
    if (is_kept(text))
        column->total += fabs(CPLStrtod(text->start, &end));
    sheet->is_odd |= end == text->start || *end;
}

void count_cell(struct sheet *sheet, int column, enum cell kind, struct text_read *text)
{
    struct counted_layer *counted = &sheet->layer->counted;
    if (sheet->rows == 1)
        sheet->is_odd |= !is_heading(sheet, column, kind, text);
    else if (column < 0 || column >= counted->count)
        sheet->is_odd = 1;
    else if (text->size) {
        sheet->empty_rows = 0;
        if (kind == NUMBER)
            count_number(sheet, counted->columns + column, text);
        else if (kind == TEXT)
            count_text(counted->columns + column, text->start, text->size);
        else {
            counted->columns[column].filled++;
            counted->columns[column].total = NAN;
        }
    }
}
