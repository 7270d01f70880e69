import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';

const read = (name: string): string => readFileSync(path.resolve(import.meta.dirname, '../..', name), 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };

it.each([
  ['package-lock.json', /^ {2}"version": "(.+)"/m],
  ['Dockerfile', /org\.opencontainers\.image\.version=(\S+)/],
  ['deploy/helm/slipway/Chart.yaml', /^version: (.+)$/m],
  ['deploy/helm/slipway/Chart.yaml', /^appVersion: (.+)$/m],
  ['CHANGELOG.md', /^## \[(\d.*?)\]/m],
])('%s has the version of package.json in %s', (file, pattern) => {
  expect(pattern.exec(read(file))?.[1]).toBe(version);
});
