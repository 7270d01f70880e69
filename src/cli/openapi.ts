import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { NestFactory } from '@nestjs/core';
import { AppModule } from '../app.module.js';
import { productFolder } from '../common/product.js';
import { buildOpenApiDocument } from '../common/openapi/openapi-document.js';
import { openApiText } from '@slipway/api/openapi/document-passes.js';
import { parseConfig } from '../config/load-config.js';
import { DatabaseAddresses } from '@slipway/database/database-addresses.js';

/** `npm run openapi` writes `openapi.json`; `npm run openapi:check` (`--check`) fails when it is not current. */
const file = path.join(productFolder(), 'openapi.json');
const text = await currentText();
if (!process.argv.includes('--check')) {
  await writeFile(file, text);
} else if ((await committedText()) !== text) {
  process.stderr.write('openapi.json is not what the code says: run npm run openapi and commit the file\n');
  process.exitCode = 1;
}

/** Nest's preview mode knows every controller without creating providers, so this needs no database. */
async function currentText(): Promise<string> {
  const app = await NestFactory.create(
    AppModule.register(parseConfig({}, false), {
      addresses: DatabaseAddresses.of('postgres://none'),
      encryptionKeys: [{ id: 'none', bytes: Buffer.alloc(32) }],
    }),
    { preview: true, abortOnError: false, logger: false },
  );
  return openApiText(buildOpenApiDocument(app));
}

async function committedText(): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return '';
    }
    throw error;
  }
}
