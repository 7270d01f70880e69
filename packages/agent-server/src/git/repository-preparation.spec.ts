import { expect, it } from '@jest/globals';
import { prepareFailure } from './repository-preparation.js';

it.each([
  ["fatal: Authentication failed for 'https://github.com/a/b.git/'", 'authentication'],
  ["fatal: could not read Username for 'https://github.com': terminal prompts disabled", 'authentication'],
  [
    "fatal: unable to access 'https://github.com/a/b/': The requested URL returned error: 403",
    'authentication',
  ],
  ['remote: Repository not found.\nfatal: repository https://x/a/b/ not found', 'repository_not_found'],
  [
    'remote: The project you were looking for could not be found or you do not have permission.',
    'repository_not_found',
  ],
  ['fatal: Remote branch nope not found in upstream origin', 'branch_not_found'],
  ["fatal: unable to access 'https://x/': Could not resolve host: x", 'unreachable'],
  ["fatal: unable to access 'http://x:1/a/': Failed to connect to x port 1 after 0 ms", 'unreachable'],
  ["fatal: unable to access 'https://x/': server certificate verification failed", 'unreachable'],
  ['fatal: write error: No space left on device', 'no_space'],
  ['fatal: something new', 'failed'],
])('%s', (output, failure) => {
  expect(prepareFailure(output)).toBe(failure);
});
