import { expect, it } from '@jest/globals';
import { missingKeyDetail } from './missing-key.js';

const record = (model: string, baseUrl: string | null) => ({
  id: 'c0ffee',
  llm: { model, baseUrl, timeoutMs: 1, usageId: 'agent' },
});

it('says how a key that was lost is given again', () => {
  expect(missingKeyDetail(record('openai/a', null), false)).toMatch(
    /not kept over a restart.*POST \/api\/conversations\/c0ffee\/credentials/,
  );
});

it.each([
  ['https://me:secret@models.example.com/v1?key=secret', '(openai/a at https://models.example.com)'],
  [null, '(openai/a)'],
  ['no address', '(openai/a)'],
])('says for which server a key was withheld, and no more of its address: %s', (baseUrl, expected) => {
  const detail = missingKeyDetail(record('openai/a', baseUrl), true);

  expect(detail).toContain(`another model server than this conversation's ${expected}`);
  expect(detail).toContain('in the settings again');
  expect(detail).not.toContain('secret');
  // The service shows no more of it.
  expect(detail.length).toBeLessThan(500);
});
