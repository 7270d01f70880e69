import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { readModelPrices } from './model-catalogue.js';

describe('readModelPrices', () => {
  let file: string;

  beforeAll(async () => {
    file = path.join(await mkdtemp(path.join(tmpdir(), 'prices-')), 'prices.yaml');
  });

  afterAll(async () => {
    await rm(path.dirname(file), { recursive: true, force: true, maxRetries: 10 });
  });

  it.each([
    ['YAML', 'openai/own: { input: 1.5, output: 6 }'],
    ['JSON', '{"openai/own": {"input": 1.5, "output": 6}}'],
  ])('reads %s', async (_, content) => {
    await writeFile(file, content);
    expect([...(await readModelPrices('MODEL_PRICES_FILE', file))]).toEqual([
      ['openai/own', { input: 1.5, output: 6 }],
    ]);
  });

  it.each([
    ['a: { input: 1 }', /^MODEL_PRICES_FILE: .*prices\.yaml: a\.output: /],
    ['a: { input: -1, output: 1 }', /a\.input: /],
    ['- 1', /^MODEL_PRICES_FILE: /],
    ['a: [', /^MODEL_PRICES_FILE: /],
  ])('refuses %j in one line', async (content, reason) => {
    await writeFile(file, content);
    const error: unknown = await readModelPrices('MODEL_PRICES_FILE', file).catch(
      (failure: unknown) => failure,
    );
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).not.toContain('\n');
    expect((error as ConfigError).message).toMatch(reason);
  });

  it('names a file that is not there', async () => {
    await expect(readModelPrices('MODEL_PRICES_FILE', '/not/there.yaml')).rejects.toThrow('/not/there.yaml');
  });
});
