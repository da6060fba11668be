/* What a result in CSV holds; see csv_counts.c. */

/* Put its layer into the answer. Returns 0, and has put nothing, if its driver must read it. */
int count_csv(const char *name);
