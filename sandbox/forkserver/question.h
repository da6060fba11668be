/* The commands of a session; see question.c. */
/* The texts of the next command, and NULL after them; NULL after the last command. */
char **next_command(int questions);

/* The texts of a list, which ends with an empty one; `at` is then behind it. */
char **take_list(char ***at);
