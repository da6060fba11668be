/* Fewer mappings of libraries for every child to copy; see mappings.c. */

void join_mappings(void);
