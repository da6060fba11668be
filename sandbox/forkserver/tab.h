/* What a table of MapInfo holds; see tab.c. */

/* Put into the answer what the table `name` holds, a .tab. Returns 0, with nothing put, if it is for its driver to judge. */
int count_tab(const char *name);
