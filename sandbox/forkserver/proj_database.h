/* PROJ's database in the fork server and its children; see proj_database.c. */

/* Get the path of the database from PROJ. */
void find_database(void);

/* Whether all open files but the link can be reopened for a child: the database and no others. */
int knows_its_descriptors(int link);

/* Open the database again for the next child. If another file has replaced it, the server ends; the next one reads that. */
void open_own_database(void);

/* In a child, read that one under the descriptor that PROJ knows. Returns a negative number if that fails. */
int take_own_database(void);

/* In the server, once the child has it, and in the child, once it has taken it. */
void close_own_database(void);
