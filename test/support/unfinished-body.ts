import { request } from 'node:http';

export interface Answer {
  status: number;
  type: string;
  body: string;
}

/** @param sent what of the body is sent; the request claims more and never ends */
export async function withUnfinishedBody(
  url: string,
  method: string,
  headers: Record<string, string>,
  sent: Buffer,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const outgoing = request(url, {
    method,
    headers: { 'Content-Type': 'application/json', 'Content-Length': '1000000', ...headers },
  });
  outgoing.once('error', reject).once('response', (response) => {
    let body = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => (body += chunk));
    response.once('end', () => {
      const [type = ''] = (response.headers['content-type'] ?? '').split(';');
      resolve({ status: response.statusCode ?? 0, type, body });
    });
  });
  outgoing.write(sent);
  try {
    return await promise;
  } finally {
    outgoing.destroy();
  }
}
