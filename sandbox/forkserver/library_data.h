/* The data of libraries in the fork server and its children; see library_data.c. */

/* Move it into a file in memory, if the host has such files, after all libraries are loaded and their functions looked up
 * (LD_BIND_NOW), and while there is one thread. */
void move_data_into_file(void);
