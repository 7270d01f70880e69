import { readFileSync } from 'node:fs';
import { buildSchema, type GraphQLSchema } from 'graphql';

/** Found by its place: the package exports it to ES modules only, and compiled tests are CommonJS. */
const SCHEMA_FILE = new URL('../../../node_modules/@octokit/graphql-schema/schema.graphql', import.meta.url);

let built: GraphQLSchema | undefined;

/** GitHub's own schema, built once per worker. It repeats some fields, so it is taken as valid. */
export function githubSchema(): GraphQLSchema {
  built ??= buildSchema(readFileSync(SCHEMA_FILE, 'utf8'), {
    assumeValid: true,
    assumeValidSDL: true,
    noLocation: true,
  });
  return built;
}
