import { describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fetchInRanges, nodeProblem, OLDEST_NODE } from './program.js';

const read = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');

it.each([
  ['20.19.2', false],
  ['22.18.0', false],
  ['22.19.0', true],
  ['22.20.1', true],
  ['23.0.0', true],
  ['24.9.0', true],
])('Node.js %s suits: %s', (version, suits) => {
  expect(nodeProblem(version) === null).toBe(suits);
});

it('is what package.json says', () => {
  expect(JSON.parse(read('package.json'))).toMatchObject({ engines: { node: `>=${OLDEST_NODE}` } });
});

it('exempts an address within a range of NO_PROXY before it is called', async () => {
  const environment: NodeJS.ProcessEnv = { NO_PROXY: '10.0.0.0/8' };
  const seen: unknown[] = [];
  const fetch = fetchInRanges(() => {
    seen.push(environment['no_proxy']);
    return Promise.resolve(new Response());
  }, environment);
  await fetch(new Request('http://model.example/'));
  await fetch('http://10.2.3.4:8000/v1');

  expect(seen).toEqual([undefined, '10.0.0.0/8,10.2.3.4']);
});

describe('the build of an image', () => {
  const [, run = ''] = /^RUN node -e '(.+?)'$/ms.exec(read('Dockerfile')) ?? [];
  const program = run.replaceAll('\\\n', '');

  it.each([
    ['20.20.2', 1, 'The base image has Node.js 20.20.2; Slipway needs 22.19 or newer\n'],
    ['22.18.0', 1, 'The base image has Node.js 22.18.0; Slipway needs 22.19 or newer\n'],
    [`${OLDEST_NODE}.0`, 0, ''],
    ['24.0.0', 0, ''],
  ])('on Node.js %s ends with %i', (version, status, message) => {
    const pretend = `Object.defineProperty(process, "versions", { value: { node: "${version}" } });`;
    const { stderr, ...ended } = spawnSync(process.execPath, ['-e', pretend + program], { encoding: 'utf8' });
    expect(program).not.toBe('');
    expect([ended.status, stderr]).toEqual([status, message]);
  });
});
