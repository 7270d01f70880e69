import path from 'node:path';
import { expect, it } from '@jest/globals';
import { loadedPackages } from '../../test/support/loaded-packages.js';

const OF_OPENTELEMETRY = /^@opentelemetry\//;
const loadedBy = (...files: string[]) =>
  loadedPackages(...files.map((file) => path.join(import.meta.dirname, '..', file)));

it('loads no more of OpenTelemetry than its API unless it exports', () => {
  const service = loadedBy('main.ts', 'program/start-service.ts');

  expect(service).toEqual(expect.arrayContaining(['@nestjs/core', 'typeorm']));
  expect(service.filter((name) => OF_OPENTELEMETRY.test(name))).toEqual(['@opentelemetry/api']);
  expect(
    loadedBy('../packages/telemetry/src/otlp-export.ts').filter((name) => OF_OPENTELEMETRY.test(name)),
  ).not.toEqual(['@opentelemetry/api']);
});
