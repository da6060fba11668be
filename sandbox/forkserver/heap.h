/* The heap that children inherit; see heap.c. */

/* Arrange the heap so that copies of this process are cheap; nothing is freed or allocated afterwards by the server. */
void settle_heap(void);
