/* What a text looks like; see text_kinds.c. All texts end with a zero. */
#pragma once

/* What cells look like. A column has the kinds of all its cells, and its type follows from them; see kinds.py. */
enum kind { TEXT = 1, WHOLE = 2, LONG = 4, DECIMAL = 8, COMMA = 16, GROUPED = 32, DAY = 64, MOMENT = 128, POINTED = 256, CODE = 512 };
enum { MOST_DIGITS = 18, UNSURE = 2 };

enum kind kind_of(const char *text);
int is_number(const char *text);

/* Whether a cell begins like a geometry in WKT, or is one in WKB or GeoJSON; UNSURE if the other program must decide. */
int is_geometry(const char *text);

/* Whether a decimal has so many digits that it may not be the floating-point number that a column holds. */
int has_many_digits(const char *text);

/* Whether a text says that there is no value, such as n/a. */
int stands_in(const char *text);

/* Whether a moment has fractions of milliseconds. */
int is_finer(const char *text);

/* Whether the comma or point of a number may separate thousands, whatever its sign, leading zeros and the space around it. */
int may_be_grouped(const char *text, char separator);

/* Whether a number separates thousands and decimals, as 1.234,5 and 1,234.5 do: so may the others of its table. */
int shows_decimals(const char *text);

/* Whether the calendar has a day of the years 1 to 9999. */
int is_day(int year, int month, int day);

/* Whether the calendar has a day that is written as four, two and two digits with something between them; where month and day begin. */
enum { MONTH_AT = 5, DAY_AT = 8 };
int is_in_calendar(const char *day);

const char *past_digits(const char *at);

/* The position after a match, or NULL. In a pattern, a digit matches digits up to it, / matches / and -. */
const char *past_pattern(const char *at, const char *pattern);
