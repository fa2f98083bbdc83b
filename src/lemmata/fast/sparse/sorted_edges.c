/* The edges of a graph sorted by target and by source, by counting: one pass for the numbers, one for the places.
 *
 * Within a row entries keep the order of the list. With `looped`, edges from a node to itself are left out and one for
 * each node is put behind the others. Every end is looked at before it is used as a place.
 */
#include <stdint.h>
#include <string.h>

typedef int64_t i64;

/* pointers: (nodes + 1), zero at first; columns and entries: (count). */
static void sort_by(const i64 *rows, const i64 *others, i64 count, i64 nodes, i64 *pointers, i64 *columns, i64 *entries) {
    for (i64 e = 0; e < count; e++) pointers[rows[e] + 1]++;
    for (i64 v = 0; v < nodes; v++) pointers[v + 1] += pointers[v];
    for (i64 e = 0; e < count; e++) {
        const i64 place = pointers[rows[e]]++;
        columns[place] = others[e];
        entries[place] = e;
    }
    /* Each pointer has moved to the end of its row, which is where the next one begins. */
    memmove(pointers + 1, pointers, sizeof(i64) * (size_t)nodes);
    pointers[0] = 0;
}

/* Writes sources, targets, and for both orders (by target, by source) pointers, columns and entries; all of them hold
 * `most` = edges + nodes at least, but for pointers. Returns how many edges were kept, or -1 where an end is no node. */
i64 sort_edges(const i64 *from, const i64 *to, i64 edges, i64 nodes, i64 looped, i64 *sources, i64 *targets,
               i64 *pointers, i64 *columns, i64 *entries, i64 *back_pointers, i64 *back_columns, i64 *back_entries) {
    i64 count = 0;
    for (i64 e = 0; e < edges; e++) {
        const i64 source = from[e], target = to[e];
        if (source < 0 || source >= nodes || target < 0 || target >= nodes) return -1;
        sources[count] = source;
        targets[count] = target;
        count += !(looped && source == target);
    }
    for (i64 v = 0; looped && v < nodes; v++, count++) sources[count] = targets[count] = v;
    sort_by(targets, sources, count, nodes, pointers, columns, entries);
    sort_by(sources, targets, count, nodes, back_pointers, back_columns, back_entries);
    return count;
}

/* A path of three nodes with an edge to oneself, in no order. */
int self_test(void) {
    const i64 from[3] = {1, 1, 0}, to[3] = {2, 1, 1}, wrong[3] = {1, 3, 0};
    i64 found[6][6] = {{0}}, pointers[4] = {0}, back[4] = {0};
    i64 count = sort_edges(from, to, 3, 3, 1, found[0], found[1], pointers, found[2], found[3], back, found[4], found[5]);
    const i64 columns[5] = {0, 0, 1, 1, 2}, entries[5] = {2, 1, 3, 0, 4}, ends[4] = {0, 1, 3, 5};
    if (count != 5 || memcmp(found[2], columns, sizeof columns) || memcmp(found[3], entries, sizeof entries)) return 1;
    if (memcmp(pointers, ends, sizeof ends)) return 2;
    return sort_edges(from, wrong, 3, 3, 0, found[0], found[1], pointers, found[2], found[3], back, found[4], found[5]) != -1;
}
