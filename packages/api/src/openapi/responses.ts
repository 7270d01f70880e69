import {
  ApiProperty,
  type ApiPropertyOptions,
  type ApiResponseSchemaHost,
  getSchemaPath,
} from '@nestjs/swagger';
import type { DtoClass } from '../validation/field.js';

/** Ids that examples share. */
export const USER_ID = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';
export const REQUEST_ID = '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50';

export const ANY_OBJECT = { type: 'object' as const, additionalProperties: true };
export const TEXT_MAP = { type: 'object' as const, additionalProperties: { type: 'string' } };

/** A member of a response that its name does not explain; one that it does is an `ApiProperty` with an example. */
export function Shown(
  description: string,
  example: unknown,
  more: ApiPropertyOptions = {},
): PropertyDecorator {
  return ApiProperty(Object.assign({}, more, { description, example }));
}

export function ShownOrNull(
  description: string,
  example: string | null,
  more: ApiPropertyOptions = {},
): PropertyDecorator {
  return Shown(description, example, Object.assign({ type: String, nullable: true }, more));
}

/** What was stored all the same; absent when there are none. */
export function WarningsOf(type: DtoClass, description: string): PropertyDecorator {
  return ApiProperty({ type: [type], required: false, description });
}

/** A text or null, which its name explains. */
export function OrNull(example: string | null, more: ApiPropertyOptions = {}): PropertyDecorator {
  return ApiProperty(Object.assign({ type: String, nullable: true }, more, { example }));
}

export function Time(example = '2026-11-21T09:30:00.000Z'): PropertyDecorator {
  return ApiProperty({ format: 'date-time', example });
}

export function TimeOrNull(example: string | null): PropertyDecorator {
  return OrNull(example, { format: 'date-time' });
}

/** Documents members of a response that are always the same. */
export function Always(values: Readonly<Record<string, unknown>>): ClassDecorator {
  return ({ prototype }) => {
    for (const [name, value] of Object.entries(values)) {
      const kind = typeof value === 'string' ? { type: String, enum: [value] } : { type: Boolean };
      const member = value === null ? OrNull(null) : ApiProperty({ ...kind, example: value });
      member(Object(prototype), name);
    }
  };
}

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Members of a row as the wire names them: `createdAt` as `created_at`. Those that are not named stay inside. */
export function toWire<Row extends object, Name extends keyof Row & string>(
  row: Row,
  ...names: readonly Name[]
): { [Each in Name as SnakeCase<Each>]: Row[Each] } {
  return Object.fromEntries(names.map((name) => [snakeCase(name), row[name]])) as ReturnType<
    typeof toWire<Row, Name>
  >;
}

export class SuccessDto {
  @ApiProperty({ example: true })
  success: boolean;
}

export async function succeeded(work: Promise<unknown>): Promise<SuccessDto> {
  await work;
  return { success: true };
}

export function listWithNulls(type: DtoClass): ApiResponseSchemaHost['schema'] {
  return {
    type: 'array',
    items: { oneOf: [{ $ref: getSchemaPath(type) }, { type: 'null' }] },
  };
}
