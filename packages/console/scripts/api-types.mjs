import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import openapiTypescript, { astToString } from 'openapi-typescript';

/** Writes what is made of openapi.json, and not committed: the types, and the values of the filter of the audit. */
const DOCUMENT = new URL('../../../openapi.json', import.meta.url);
const FOLDER = new URL('../generated/', import.meta.url);

const { AuditAction } = JSON.parse(readFileSync(DOCUMENT, 'utf8')).components.schemas;

mkdirSync(FOLDER, { recursive: true });
write('schema.d.ts', astToString(await openapiTypescript(DOCUMENT, { defaultNonNullable: false })));
write('audit-actions.ts', `export const AUDIT_ACTIONS = ${JSON.stringify(AuditAction.enum)} as const;\n`);

/** A build and a type check may run at the same time. */
function write(name, text) {
  const file = new URL(name, FOLDER);
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
    const written = new URL(`${file.href}.${process.pid}`);
    writeFileSync(written, text);
    renameSync(written, file);
  }
}
