import request from 'supertest';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Requests to an application with the headers of a user, or with none. */
export class Caller {
  constructor(
    private readonly url: string,
    private readonly headers: Record<string, string>,
  ) {}

  ask(method: Method, path: string, body?: object): request.Test {
    const asked = request(this.url)[method](path).set(this.headers);
    return body === undefined ? asked : asked.send(body);
  }

  get(path: string): request.Test {
    return this.ask('get', path);
  }

  post(path: string, body?: object): request.Test {
    return this.ask('post', path, body);
  }

  put(path: string, body?: object): request.Test {
    return this.ask('put', path, body);
  }

  patch(path: string, body?: object): request.Test {
    return this.ask('patch', path, body);
  }

  delete(path: string, body?: object): request.Test {
    return this.ask('delete', path, body);
  }
}
