/* The commands that change the tables that a session holds; see altering.c. */
#pragma GCC visibility push(hidden)

void alter(char **at);
void place(char **at);

#pragma GCC visibility pop
