/* What a part of an archive holds; see archive_search.c. */
struct part_search {
    int text, rows;
};

/* Whether the part `part` of the ZIP archive `file` holds one of `texts`, of which the last is followed by NULL, values that
   merged cells of ODS cover or its driver may change, rows without values between others or texts in columns of numbers, which
   all count as a text; and rows that its driver does not reach, because it stops at others that repeat too often. Neither if
   there is no such part. */
struct part_search search_part(const char *file, const char *part, char *const *texts);
