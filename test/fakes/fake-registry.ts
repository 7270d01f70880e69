import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { gzipSync } from 'node:zlib';
import { startListening, stopServer } from '../support/start-listening.js';

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
/** A tar archive without files. */
const EMPTY_ARCHIVE = Buffer.alloc(1024);

/** An image registry over real HTTP (the part of OCI distribution that a pull needs) with a single, empty image. */
export class FakeRegistry {
  /** The reference of the image, with the registry's address. */
  readonly image: string;
  readonly #server: Server;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.image = `127.0.0.1:${port}/empty:1`;
  }

  static async start(): Promise<FakeRegistry> {
    const layer = gzipSync(EMPTY_ARCHIVE);
    const config = Buffer.from(
      JSON.stringify({
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        os: 'linux',
        config: { Entrypoint: ['/not-there'] },
        rootfs: { type: 'layers', diff_ids: [digest(EMPTY_ARCHIVE)] },
      }),
    );
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: MANIFEST,
        config: part('application/vnd.docker.container.image.v1+json', config),
        layers: [part('application/vnd.docker.image.rootfs.diff.tar.gzip', layer)],
      }),
    );
    const resources = new Map<string, { type: string; body: Buffer }>([
      ['/v2/', { type: 'application/json', body: Buffer.from('{}') }],
      ...['1', digest(manifest)].map(
        (name) => [`/v2/empty/manifests/${name}`, { type: MANIFEST, body: manifest }] as const,
      ),
      ...[config, layer].map(
        (body) => [`/v2/empty/blobs/${digest(body)}`, { type: 'application/octet-stream', body }] as const,
      ),
    ]);
    const server = createServer((request, response) => {
      const resource = resources.get(request.url ?? '');
      if (resource === undefined) {
        response.writeHead(404, { 'Content-Type': 'application/json' });
        response.end(JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: 'manifest unknown' }] }));
        return;
      }
      response.writeHead(200, {
        'Content-Type': resource.type,
        'Content-Length': resource.body.length,
        'Docker-Content-Digest': digest(resource.body),
      });
      response.end(request.method === 'HEAD' ? undefined : resource.body);
    });
    return new FakeRegistry(server, await startListening(server));
  }

  async stop(): Promise<void> {
    await stopServer(this.#server);
  }
}

function part(mediaType: string, body: Buffer) {
  return { mediaType, size: body.length, digest: digest(body) };
}

function digest(body: Buffer): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`;
}
