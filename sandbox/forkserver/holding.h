/* What a session holds; see holding.c. */
#pragma once
#include "gdal.h"

enum { MOST_COLUMNS = 2000, TABLE_NAME = 32 };

/* What is held, and what is converted: that, or what was opened last. */
extern handle memory, latest;

/* A layer of a file that is read again when it is converted, in place of a copy in memory; its file, and its name in commands. */
extern handle stayed, stayed_in;
extern char stayed_table[TABLE_NAME];

/* The number of a table that is held; -1 if there is none. */
int memory_index(const char *table);

void create_field(handle layer, const char *name, int type, int subtype, int width);

/* Copy the layer that has stayed in its file, if there is one. */
void bring_in(void);

/* The commands; see session.c. */
void open_source(char **at);
void load(char **at);
void query(char **at);
