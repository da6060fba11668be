/* Files of separated values, looked at as a whole; see csv.c. */
/* Put what is in `file` into the answer; `known` is its delimiter, or empty where that is to be found out. */
void examine_csv(const char *file, const char *known);
