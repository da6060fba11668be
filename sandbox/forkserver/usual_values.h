/* A function for queries about values of databases; see usual_values.c. */

/* Give it to all databases that are opened from now on. */
void add_usual_values(void);
