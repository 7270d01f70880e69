import { expect, it } from '@jest/globals';
import path from 'node:path';
import { loadedPackages } from '../../../test/support/loaded-packages.js';

const loadedBy = (file: string): string[] => loadedPackages(path.join(import.meta.dirname, file));

it('loads neither Express, zod, ws nor the AI SDK before it listens', () => {
  expect(loadedBy('main.ts')).toEqual(['p-retry', 'p-limit']);
});

it('loads them with the routes and with the engine', () => {
  expect(loadedBy('http/app.ts')).toEqual(expect.arrayContaining(['express', 'ws', 'zod']));
  expect(loadedBy('engine/native/native.engine.ts')).toContain('ai');
});

it('loads nothing of OpenTelemetry', () => {
  const loaded = [...loadedBy('main.ts'), ...loadedBy('http/app.ts')];

  expect(loaded.filter((name) => name.startsWith('@opentelemetry/'))).toEqual([]);
});
