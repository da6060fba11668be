/* Large pages for what every child runs; see large_pages.c. */

/* Move the code around an address, and its constants, into large pages, if the host has any. */
void move_into_large_pages(void *code);
