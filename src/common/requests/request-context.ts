import { AsyncLocalStorage } from 'node:async_hooks';

/** What every log line and problem document of a request carries. */
export interface RequestContext {
  requestId: string;
  /** Set once the key is known. */
  userId?: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

/** Runs `work` as part of a request. */
export function runInRequestContext<T>(context: RequestContext, work: () => T): T {
  return storage.run(context, work);
}

/** The current request, or undefined outside of one. */
export function currentRequest(): RequestContext | undefined {
  return storage.getStore();
}
