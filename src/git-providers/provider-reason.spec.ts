import { describe, expect, it } from '@jest/globals';
import { providerReason } from './provider-reason.js';

const TOKEN = 'mona@example.com:s3cret/token';

describe('providerReason', () => {
  it.each<[string[], string | null]>([
    [[], null],
    [['', ' \n '], null],
    [['No commits between main and topic'], 'No commits between main and topic'],
    [['Validation Failed', 'head: invalid', 'Validation Failed'], 'Validation Failed; head: invalid'],
    [['two\r\nlines\u0000 and\u202e more'], 'two lines and more'],
    [[`the token ${TOKEN} is bad`], 'the token *** is bad'],
    [['the token s3cret/token is bad'], 'the token *** is bad'],
    [[`Basic ${Buffer.from(TOKEN).toString('base64')}`], 'Basic ***'],
    [['?private_token=s3cret%2Ftoken'], '?private_token=***'],
  ])('says of %j: %j', (texts, expected) => {
    expect(providerReason(texts, TOKEN)).toBe(expected);
  });

  it('is no longer than 300 characters, and cuts none in half', () => {
    const reason = providerReason(['🚢'.repeat(400)], TOKEN) ?? '';
    expect(reason).toBe(`${'🚢'.repeat(299)}…`);
  });
});
