/* Whether part of an archive holds a text; see seeking.c. */
#pragma GCC visibility push(hidden)

/* Whether the part `part` of the ZIP archive `file` holds `text`; 0 also if there is no such part. */
int part_holds(const char *file, const char *part, const char *text);

#pragma GCC visibility pop
