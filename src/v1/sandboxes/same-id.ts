import { InvalidInputError } from '../../common/errors/invalid-input.error.js';

/**
 * The id of the path, which some clients repeat in the query.
 *
 * @throws InvalidInputError when the two are not the same: a sandbox that is not meant must not go
 */
export function sameId(inPath: string, inQuery: string | undefined): string {
  if (inQuery !== undefined && inQuery !== inPath) {
    throw new InvalidInputError([
      {
        loc: ['query', 'sandbox_id'],
        msg: 'Expected the same id as in the path, or none.',
        type: 'value_error',
      },
    ]);
  }
  return inPath;
}
