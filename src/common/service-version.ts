import { readFileSync } from 'node:fs';
import path from 'node:path';

let version: string | undefined;

/** The service's own version, from package.json two folders up (the same from `src` and from `dist`). */
export function serviceVersion(): string {
  version ??= readVersion();
  return version;
}

function readVersion(): string {
  const file = path.join(import.meta.dirname, '..', '..', 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
