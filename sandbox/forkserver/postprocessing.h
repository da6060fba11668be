/* The last steps of results that drivers do not write as they are delivered; see postprocessing.c. All return 0 if they fail. */

/* Copy an XML file without a dimension for all of it, and with attributes on its root element that it lacks. */
int declare_attributes(const char *xml, const char *attributes, const char *copy);

/* Join lines of GeoJSON features to a document, whose name in JSON is `title`. */
int gather_lines(const char *lines, const char *title, const char *document);

/* Write the only column of separated values as lines of WKT, one for each feature. */
int write_lines_of_wkt(const char *separated, const char *lines);

/* Copy the rows of a CSV of "1" or "2" columns without the separators behind the last one that some drivers put there. */
int even_rows(const char *rows, const char *csv, const char *columns);

/* Turn the holes of areas with elevations in a .shp that go around as areas do. */
int turn_holes(const char *shapes);

/* Count the lines of WKT in a file, and put the counts into the answer. */
void count_lines_of_wkt(const char *file);
