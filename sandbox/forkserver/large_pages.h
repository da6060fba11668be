/* Large pages for code that every child runs; see large_pages.c. */

/* Move the code around an address into large pages, if the host has any. */
void move_into_large_pages(void *code);
