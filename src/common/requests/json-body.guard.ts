import { type CanActivate, type ExecutionContext, type INestApplication, SetMetadata } from '@nestjs/common';
import { GUARDS_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import type { Request } from 'express';
import { KeyedLimit } from '@slipway/common/async.js';
import {
  type BodyBounds,
  mayHaveBody,
  readJsonBody,
  skimJsonBody,
  receiveByDeadline,
} from '@slipway/common/requests/json-body.js';
import { InvalidInputError } from '../errors/domain-error.js';
import { currentRequest } from './request-context.js';
import { unsafeTextProblems } from './unsafe-text.js';

/** What a route's body may be, and how it is handled. */
export interface JsonBodyOptions extends BodyBounds {
  deadlineMs: number;
  /** Accepts text that PostgreSQL cannot store, for bodies that are not stored. */
  anyText: boolean;
  /** The handler gets what kind of value it is (`BodyKind`) in place of the value, which is dropped while it arrives. */
  skim: boolean;
}

/** Far more than ordinary requests need. */
const USUAL: JsonBodyOptions = {
  bytes: 1_048_576,
  values: 20_000,
  deadlineMs: 20_000,
  anyText: false,
  skim: false,
};

/** Bodies of one caller that are received and parsed at the same time; further ones wait in their connections. */
const BODIES_AT_ONCE = 8;

/** Methods whose bodies have no meaning (RFC 9110, 9.3.1). */
const READING_METHODS = new Set(['GET', 'HEAD']);
const JSON_BODY = 'slipway:json-body';

/** Bounds of bodies that a route sets for itself. */
export function JsonBodyBounds(options: Partial<JsonBodyOptions>): ReturnType<typeof SetMetadata> {
  return SetMetadata(JSON_BODY, options);
}

/**
 * Reads the body of a request, as the last guard of every handler with a `@Body()`: nothing of a body is received,
 * unpacked or parsed for a caller whom a guard before it has refused, and no middleware reads bodies. (An interceptor would
 * come later than all guards too, but Nest's cost as much as a third of a small response.)
 */
export class JsonBodyGuard implements CanActivate {
  readonly #limit = new KeyedLimit(BODIES_AT_ONCE);
  readonly #usual: JsonBodyOptions;

  /** @param usual bounds for all routes that differ from the defaults */
  constructor(usual: Partial<JsonBodyOptions> = {}) {
    this.#usual = { ...USUAL, ...usual };
  }

  /** Puts this guard behind those of every handler with a `@Body()`. Called before the application makes its routes. */
  protect(app: INestApplication): void {
    const scanner = new MetadataScanner();
    for (const { controllers } of app.get(ModulesContainer).values()) {
      for (const { metatype } of controllers.values()) {
        const prototype: unknown = metatype?.prototype;
        if (typeof metatype === 'function' && typeof prototype === 'object' && prototype !== null) {
          scanner
            .getAllMethodNames(prototype)
            .filter((method) => takesBody(metatype, method))
            .forEach((method) => this.#append(Reflect.get(prototype, method)));
        }
      }
    }
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    if (!READING_METHODS.has(request.method) && mayHaveBody(request)) {
      request.body = await this.#take(request, this.#optionsOf(context));
    }
    return true;
  }

  /** Handlers are shared by all applications of a process: the guard of an earlier one goes. */
  #append(handler: object): void {
    const known: unknown = Reflect.getMetadata(GUARDS_METADATA, handler);
    const others = Array.isArray(known) ? known.filter((one) => !(one instanceof JsonBodyGuard)) : [];
    Reflect.defineMetadata(GUARDS_METADATA, [...others, this], handler);
  }

  async #take(request: Request, options: JsonBodyOptions): Promise<unknown> {
    const caller = currentRequest()?.caller ?? 'anybody';
    return await receiveByDeadline(request, options.deadlineMs, () =>
      this.#limit.run(caller, () => read(request, options)),
    );
  }

  #optionsOf(context: ExecutionContext): JsonBodyOptions {
    const own: unknown = Reflect.getMetadata(JSON_BODY, context.getHandler());
    return typeof own === 'object' ? { ...this.#usual, ...own } : this.#usual;
  }
}

/** Nest keeps the parameters of a handler as `<type>:<index>`. */
function takesBody(controller: object, method: string): boolean {
  const parameters: unknown = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, method);
  return Object.keys(Object(parameters)).some((key) => key.startsWith(`${RouteParamtypes.BODY}:`));
}

async function read(request: Request, options: JsonBodyOptions): Promise<unknown> {
  if (options.skim) {
    return await skimJsonBody(request, options);
  }
  const { value, mayHaveUnsafeText } = await readJsonBody(request, options);
  const problems = mayHaveUnsafeText && !options.anyText ? unsafeTextProblems(value) : [];
  if (problems.length > 0) {
    throw new InvalidInputError(problems);
  }
  return value;
}
