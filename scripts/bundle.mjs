// Compiles the sources and joins them, with the packages they use, into few files: finding, reading and linking hundreds of
// them takes longer than running them (docs/adr/0031, 0040). Types are checked elsewhere (docs/adr/0069). `--dev` bundles only
// the agent server and the egress proxy.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import nodeHttp from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import remapping from '@jridgewell/remapping';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = path.join(root, 'dist');
const NOTHING = { version: 3, sources: [], names: [], mappings: '' };

/**
 * The folder of the package that a module belongs to; the bundler marks modules that it has changed with a zero byte.
 */
const PACKAGE = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//;

/** Leaves out packages that are not installed: the frameworks try to import optional ones. */
const optionalPackages = {
  name: 'optional-packages',
  async resolveId(id, importer, { isEntry, kind }) {
    if (isEntry || /^[./]|^node:/.test(id)) {
      return null;
    }
    const isInstalled = (await this.resolve(id, importer, { skipSelf: true, kind })) !== null;
    return isInstalled ? null : { id, external: true };
  },
};

/**
 * Express brings parsers for bodies in any encoding, which neither program uses: bodies are JSON in UTF-8. Their tables
 * would be a third of what an agent server reads before it knows its routes.
 */
const withoutEncodings = {
  name: 'without-encodings',
  load: {
    filter: { id: /\/iconv-lite\/encodings\/tables\/[^/]+\.json$/ },
    handler: () => ({ code: '[]', moduleType: 'json' }),
  },
};

/** The types that an agent server's routes read or answer; the table of all types that Express brings has two thousand. */
const TYPES =
  /^(application\/(json|octet-stream|problem\+json|x-www-form-urlencoded)|multipart\/form-data|text\/(html|plain))$/;
const withoutTypes = {
  name: 'without-types',
  load: {
    filter: { id: /\/mime-db\/db\.json$/ },
    handler(id) {
      const types = Object.entries(JSON.parse(readFileSync(id, 'utf8')));
      const code = JSON.stringify(Object.fromEntries(types.filter(([name]) => TYPES.test(name))));
      return { code, moduleType: 'json' };
    },
  },
};

const missing = (name, what) =>
  `export const ${name} = () => { throw new Error('${what} is not in the bundle: see scripts/bundle.mjs'); };`;
/**
 * What the packages import and the service never calls: class-validator's telephone numbers, half a megabyte in each
 * process; dockerode's connections by SSH, with a native add-on, and its builds of images.
 */
const UNUSED = {
  'libphonenumber-js/max': missing('parsePhoneNumber', 'the check of telephone numbers'),
  ssh2: missing('Client', 'SSH'),
  '@grpc/grpc-js': missing('Server', 'gRPC'),
  '@grpc/proto-loader': missing('loadSync', 'gRPC'),
};
const withoutUnused = {
  name: 'without-unused',
  resolveId: (id) => (id in UNUSED ? `\0unused:${id}` : null),
  load: (id) => (id.startsWith('\0unused:') ? UNUSED[id.slice('\0unused:'.length)] : null),
};

const OWN_REQUIRE = 'const require = createRequire(import.meta.url);\n';

/**
 * These two files load class-validator, class-transformer and TypeORM by a `require` that they make themselves, which no
 * bundler follows: the service would read a second copy of each, 690 files, besides the one in the bundle (docs/adr/0047).
 */
const requiredByNest = {
  name: 'required-by-nest',
  transform: {
    filter: {
      id: /\/@nestjs\/(mapped-types\/dist\/type-helpers\.utils|typeorm\/dist\/common\/typeorm-compat)\.js$/,
    },
    handler(code, id) {
      if (!code.includes(OWN_REQUIRE)) {
        throw new Error(`${id} no longer makes a require of its own: remove it from requiredByNest`);
      }
      return { code: code.replace(OWN_REQUIRE, ''), map: null };
    },
  },
};

const HTTP = '\0node:http';
/** Exports that load the implementation of `fetch` when they are read. */
const COSTLY_EXPORTS = new Set(['WebSocket', 'CloseEvent', 'MessageEvent']);

/**
 * `import … from 'node:http'` makes Node.js read every export of it, and so load the implementation of `fetch` and
 * `WebSocket`: a quarter of the processor time that an agent server took until it responded (docs/adr/0043).
 */
const http = {
  name: 'http',
  resolveId: (id, _importer, { kind }) =>
    /^(node:)?http$/.test(id) && kind === 'import-statement' ? HTTP : null,
  load(id) {
    if (id !== HTTP) {
      return null;
    }
    const names = Object.keys(nodeHttp).filter((name) => !COSTLY_EXPORTS.has(name));
    return [
      `const http = process.getBuiltinModule('node:http');`,
      `export const { ${names.join(', ')} } = http;`,
      'export default http;',
    ].join('\n');
  },
};

/**
 * V8 keeps a source in two bytes per character if a single character needs two. Only strings and comments contain such
 * characters.
 */
function inOneByte(code) {
  return code.replaceAll(/[^\0-\u007F]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * @param {string} folder of `dist`
 * @param {Record<string, string>} input sources of programs, by the name that they get
 * @param {object[]} plugins of the bundler
 * @param {object} outputOptions options of the bundler's output
 * @returns {Promise<{ folders: string[], entries: Record<string, string> }>} folders of the packages that are in it, and the
 *   file of each program
 */
async function bundle(folder, input, plugins, outputOptions) {
  const made = await rolldown({
    cwd: root,
    platform: 'node',
    tsconfig: path.join(root, 'tsconfig.json'),
    plugins,
    input: Object.fromEntries(Object.entries(input).map(([name, file]) => [name, path.join(root, file)])),
    // A warning in a long log would become a bundle that fails at run time.
    onLog: (level, log) => {
      if (level === 'warn') {
        throw new Error(log.message);
      }
    },
  });
  const target = path.join(dist, folder);
  const { output } = await made.write({
    dir: target,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    ...outputOptions,
  });
  await made.close();
  for (const { fileName, code, map } of output) {
    // Files with a source map are left alone: escapes would shift its columns.
    if (code && !map) {
      writeFileSync(path.join(target, fileName), inOneByte(code));
    }
    if (map) {
      writeFileSync(path.join(target, `${fileName}.map`), sourceMap(map, path.join(target, fileName)));
    }
  }
  const folders = output.flatMap(({ moduleIds = [] }) =>
    moduleIds.flatMap((id) => PACKAGE.exec(id)?.[1] ?? []),
  );
  return {
    folders: [...new Set(folders)].toSorted((a, b) => a.localeCompare(b, 'en')),
    entries: Object.fromEntries(
      output.flatMap(({ isEntry, name, fileName }) => (isEntry ? [[name, fileName]] : [])),
    ),
  };
}

/** Licenses require their text in every copy, and an image of sandboxes has no `node_modules` with it. */
function notices(folders) {
  const texts = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
    const bodies = files.map((file) => readFileSync(path.join(folder, file), 'utf8').trim());
    return [`${name} ${version} (${license})`, ...bodies].join('\n\n');
  });
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

/** A map from the bundle to our TypeScript only: the maps of packages would take 20 MB of memory in each process. */
function sourceMap(map, file) {
  const folder = path.dirname(file);
  const traced = remapping(
    { ...map, sources: map.sources.map((source) => path.resolve(folder, source)) },
    (source, context) => {
      const isOwn = context.depth > 1 || /^(packages\/[^/]+\/)?src\//.test(path.relative(root, source));
      return isOwn ? null : NOTHING;
    },
    { excludeContent: true },
  );
  traced.sources = traced.sources.map((source) => path.relative(folder, source));
  return JSON.stringify(traced);
}

/** Each process keeps the sources that it has loaded in memory. */
const COMMENTS = { legal: true, annotation: false, jsdoc: false };

// CommonJS, because V8's code caches can be had for it, and because its `import`s of built-in modules cost nothing
// (docs/adr/0043, 0054).
const isDev = process.argv[2] === '--dev';
const AGENT_SERVER = 'bundle/agent-server';
const source = (name) => `packages/agent-server/src/${name}.ts`;
const { folders, entries } = await bundle(
  AGENT_SERVER,
  { program: source('main'), 'relay.main': source('relay.main') },
  [withoutEncodings, withoutTypes],
  {
    format: 'cjs',
    comments: COMMENTS,
    // The hash changes with the content, so that main.js tells which build a warm sandbox has.
    entryFileNames: ({ name }) => (name === 'program' ? 'chunks/[name]-[hash].js' : '[name].js'),
  },
);
await bundle(AGENT_SERVER, { loader: source('bundle-loader') }, [], { format: 'cjs' });
const agentServer = path.join(dist, AGENT_SERVER);
writeFileSync(
  path.join(agentServer, 'main.js'),
  `require('./loader.js').loadBundle(require('node:path').join(__dirname, '${entries.program}'));\n`,
);
writeFileSync(path.join(agentServer, 'LICENSES.txt'), notices(folders));
// Whatever package.json is above this folder.
writeFileSync(path.join(agentServer, 'package.json'), '{ "type": "commonjs" }\n');
// Beside `bundle`, which sandboxes may read: a proxy is no part of them.
const EGRESS_PROXY = 'egress-proxy';
const proxy = await bundle(EGRESS_PROXY, { main: 'packages/egress-proxy/src/main.ts' }, [], {
  sourcemap: true,
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
  comments: COMMENTS,
});
const egressProxy = path.join(dist, EGRESS_PROXY);
writeFileSync(path.join(egressProxy, 'LICENSES.txt'), notices(proxy.folders));
writeFileSync(path.join(egressProxy, 'package.json'), '{ "type": "module" }\n');
if (!isDev) {
  const service = await bundle(
    'service',
    { main: 'src/main.ts', keys: 'src/cli/keys.ts', slipway: 'src/cli/slipway.ts' },
    [http, requiredByNest, withoutEncodings, withoutUnused, optionalPackages],
    {
      // Swagger, TypeORM and log lines use the names of classes.
      keepNames: true,
      sourcemap: true,
      // Lines are kept for stack traces. One character beyond Latin-1 would double the size of a file in memory.
      minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
      comments: COMMENTS,
    },
  );
  writeFileSync(path.join(dist, 'service/LICENSES.txt'), notices(service.folders));
  // The page of the API document, whose package would be the only one that the service needs beside its bundle.
  const swagger = path.join(dist, 'swagger-ui');
  mkdirSync(swagger, { recursive: true });
  for (const name of [
    'swagger-ui.css',
    'swagger-ui-bundle.js',
    'favicon-16x16.png',
    'favicon-32x32.png',
    'LICENSE',
  ]) {
    copyFileSync(path.join(root, 'node_modules/swagger-ui-dist', name), path.join(swagger, name));
  }
}
