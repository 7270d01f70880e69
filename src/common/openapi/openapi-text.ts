import type { OpenAPIObject } from '@nestjs/swagger';

/**
 * The text of `openapi.json`: paths and components in alphabetical order, so that the order in which modules are
 * imported does not show. The members of each of them keep the order they were declared in.
 */
export function openApiText(document: OpenAPIObject): string {
  const { components = {}, paths, ...rest } = document;
  const sorted = {
    ...rest,
    paths: sortedByKey(paths),
    components: Object.fromEntries(
      Object.entries(components).map(([kind, members]: [string, Record<string, unknown>]) => [
        kind,
        sortedByKey(members),
      ]),
    ),
  };
  return `${JSON.stringify(sorted, null, 2)}\n`;
}

function sortedByKey<T>(members: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
