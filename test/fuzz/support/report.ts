import { markdownTable } from '../../support/program-runs.js';
import type { FuzzResult } from './fuzz-passes.js';

const CLASSES = ['2xx', '3xx', '4xx', '5xx'];
const HEAD = ['target', 'operations', 'cases', ...CLASSES, 'wanted exceptions', 'failures', 'seconds'];

export function table(results: readonly FuzzResult[]): string {
  const rows = results.map((result) => [
    result.target,
    result.operations,
    result.cases,
    ...CLASSES.map((name) => result.byClass.get(name) ?? 0),
    result.exceptions.reduce((total, { count }) => total + count, 0),
    result.failures.length,
    result.seconds.toFixed(0),
  ]);
  return markdownTable(HEAD, rows);
}

/** Each failure with the request that shows it, and each exception that was needed. */
export function failureTexts({ target, failures, exceptions }: FuzzResult): string[] {
  return [
    ...failures.map(
      ({ operation, check, status, count, message, request, answer }) =>
        `\nFAILED  ${target}: ${operation}: ${check}, ${status} (${count} times)\n${indented(message)}\n${indented(request)}\n${indented(answer)}`,
    ),
    ...exceptions
      .filter(({ count }) => count > 0)
      .map(({ because, count }) => `wanted  ${target}: ${count} times: ${because}`),
  ];
}

function indented(text: string): string {
  return text
    .trim()
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => `    ${line}`)
    .join('\n');
}
