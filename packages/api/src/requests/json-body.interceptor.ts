import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import type { Observable } from 'rxjs';
import { KeyedLimit } from '@slipway/common/async.js';
import { networkOf } from '@slipway/common/http/address-rules.js';
import {
  type BodyBounds,
  mayHaveBody,
  parseForm,
  readJsonBody,
  readRawBody,
  receiveByDeadline,
  skimJsonBody,
} from '@slipway/common/requests/json-body.js';
import { requireNone } from '../errors/problem-error.js';
import { currentRequest } from './request-context.js';
import { unsafeTextProblems } from './unsafe-text.js';

export interface JsonBodyOptions extends BodyBounds {
  deadlineMs: number;
  /** Accepts text that PostgreSQL cannot store, for bodies that are not stored. */
  anyText: boolean;
  skim: boolean;
  /** Takes a form, too: its fields are texts. */
  form: boolean;
  /** Gives a handler without `@Body()` the bytes as they came, for a signature. */
  raw: boolean;
}

const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

const USUAL: JsonBodyOptions = {
  bytes: 1_048_576,
  values: 20_000,
  deadlineMs: 20_000,
  anyText: false,
  skim: false,
  form: false,
  raw: false,
};

/** These fit into a few packets, and take no memory to speak of. */
const SMALL_BYTES = 2_048;
const SMALL_DEADLINE_MS = 3_000;
/** Bodies that are read at once for one caller; further bodies wait in their connections. */
const BODIES_AT_ONCE = 8;
/** Larger ones, of all callers without a key. */
const KEYLESS_AT_ONCE = 100;
/** Bodies above the usual size that are read at once for callers without a key; they take memory until they are answered. */
const LARGE_AT_ONCE = 4;

/** Bounds of bodies that a route sets for itself. */
export const JsonBodyBounds = Reflector.createDecorator<Partial<JsonBodyOptions>>();

/** Reads a body after all guards: nothing is received, unpacked or parsed for a caller that one of them refuses. */
export class JsonBodyInterceptor implements NestInterceptor {
  private readonly limit = new KeyedLimit(BODIES_AT_ONCE);
  private readonly keyless = new KeylessBodies(KEYLESS_AT_ONCE);
  private readonly large = new KeylessBodies(LARGE_AT_ONCE, true);
  private readonly reflector = new Reflector();
  private readonly usual: JsonBodyOptions;

  /** @param usual bounds for all routes that differ from the defaults */
  constructor(usual: Partial<JsonBodyOptions> = {}) {
    this.usual = { ...USUAL, ...usual };
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    const options = { ...this.usual, ...this.reflector.get(JsonBodyBounds, context.getHandler()) };
    const { caller, address, takePlace } = currentRequest() ?? {};
    if (mayHaveBody(request) && (options.raw || takesBody(context))) {
      const receive = (): Promise<unknown> => read(request, http.getResponse(), options);
      const isSmall = options.bytes <= SMALL_BYTES;
      const deadlineMs = Math.min(options.deadlineMs, isSmall ? SMALL_DEADLINE_MS : Infinity);
      request.body = await receiveByDeadline(request, deadlineMs, () => {
        if (caller !== undefined) {
          return this.limit.run(caller, receive);
        }
        if (isSmall) {
          return receive();
        }
        const mayBe = Math.min(options.bytes, Number(request.headers['content-length'] ?? Infinity));
        const bodies = mayBe > USUAL.bytes ? this.large : this.keyless;
        return bodies.receive(request, http.getResponse(), networkOf(address), receive);
      });
    }
    takePlace?.();
    return next.handle();
  }
}

/** Large bodies of callers without a key: none waits for those of others, and of too many the longest awaited is given up. */
class KeylessBodies {
  private readonly awaited = new Map<Request, string>();

  /** @param holds whether a body that was received keeps its place until it is answered */
  constructor(
    private readonly atOnce: number,
    private readonly holds = false,
  ) {}

  async receive<T>(
    request: Request,
    response: Response,
    network: string,
    receiveBody: () => Promise<T>,
  ): Promise<T> {
    this.awaited.set(request, network);
    if (this.awaited.size > this.atOnce) {
      this.giveUp();
    }
    response.once('close', () => this.awaited.delete(request));
    const body = await receiveBody();
    if (!this.holds) {
      this.awaited.delete(request);
    }
    return body;
  }

  /** One of the network that has the most. */
  private giveUp(): void {
    const byNetwork = [...Map.groupBy(this.awaited, ([, network]) => network).values()];
    const [[[request] = []] = []] = byNetwork.toSorted((one, other) => other.length - one.length);
    if (request !== undefined) {
      this.awaited.delete(request);
      request.destroy();
    }
  }
}

/** Nest keeps the parameters of a handler as `<type>:<index>`. */
function takesBody(context: ExecutionContext): boolean {
  const { name } = context.getHandler();
  const parameters: unknown = Reflect.getMetadata(ROUTE_ARGS_METADATA, context.getClass(), name);
  return Object.keys(Object(parameters)).some((key) => key.startsWith(`${RouteParamtypes.BODY}:`));
}

async function read(request: Request, response: Response, options: JsonBodyOptions): Promise<unknown> {
  if (options.skim) {
    return await skimJsonBody(request, options);
  }
  if (options.raw) {
    return await readRawBody(request, options.bytes);
  }
  const isForm = options.form && FORM_TYPE.test(request.headers['content-type'] ?? '');
  const body = isForm
    ? parseForm((await readRawBody(request, options.bytes)).toString())
    : await readJsonBody(request, response, options);
  const problems = options.anyText ? [] : unsafeTextProblems(body);
  requireNone(problems);
  return body;
}
