import { describe, expect, it } from '@jest/globals';
import { UpstreamError } from '../common/http/upstream-error.js';
import { combinedError } from './combined-error.js';
import { GitProviderError } from './git-provider.error.js';

const unauthorized = new GitProviderError('unauthorized');
const limited = new GitProviderError('rate_limited', { retryAfterSeconds: 41 });
const late = new UpstreamError('timeout', 'https://git.example.com');

describe('combinedError', () => {
  it.each([
    ['the first', [limited, late], 'rate_limited', 41],
    ['the first', [late, limited], 'timeout', null],
    ['a rejection', [limited, unauthorized], 'unauthorized', null],
  ])('speaks as %s of %j', (_name, reasons, code, retryAfterSeconds) => {
    expect(combinedError(reasons)).toMatchObject({ code, retryAfterSeconds });
  });

  it('keeps every reason', () => {
    expect(combinedError([limited, unauthorized]).cause).toMatchObject({ errors: [limited, unauthorized] });
  });
});
