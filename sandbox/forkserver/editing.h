/* The commands that change the tables that a session holds; see editing.c. */
void alter(char **at);
void place(char **at);
