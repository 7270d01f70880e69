import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';

const STATIC_IMPORT = /^(?:import|export) (?!type\b)(?:(.+?) from )?'([^']+)';$/gms;
const ONLY_TYPES = /^\{\s*(type \w+,?\s*)+\}$/;

/** Packages that a source file loads by static imports, its own imports included. */
function loadedPackages(file: string, seen: Set<string>): string[] {
  if (seen.has(file)) {
    return [];
  }
  seen.add(file);
  return [...readFileSync(file, 'utf8').matchAll(STATIC_IMPORT)].flatMap(([, names = '', from = '']) => {
    if (ONLY_TYPES.test(names)) {
      return [];
    }
    return from.startsWith('.')
      ? loadedPackages(path.resolve(path.dirname(file), from.replace(/\.js$/, '.ts')), seen)
      : [from];
  });
}

const OF_OPENTELEMETRY = /^@opentelemetry\//;
const source = (file: string) => path.join(import.meta.dirname, '..', file);
const loadedBy = (...files: string[]) => {
  const seen = new Set<string>();
  return new Set(files.flatMap((file) => loadedPackages(source(file), seen)));
};

it('loads no more of OpenTelemetry than its API unless it exports', () => {
  const service = loadedBy('main.ts', 'program/start-service.ts');

  expect([...service]).toEqual(expect.arrayContaining(['@nestjs/core', 'typeorm']));
  expect([...service].filter((name) => OF_OPENTELEMETRY.test(name))).toEqual(['@opentelemetry/api']);
  expect(
    [...loadedBy('observability/otlp-export.ts')].filter((name) => OF_OPENTELEMETRY.test(name)),
  ).not.toEqual(['@opentelemetry/api']);
});

it('loads nothing of it in the agent server either', () => {
  const agentServer = [...loadedBy('agent-server/main.ts', 'agent-server/http/app.ts')];

  expect(agentServer.filter((name) => OF_OPENTELEMETRY.test(name))).toEqual([]);
});
