import { Injectable, type ArgumentMetadata, type PipeTransform } from '@nestjs/common';
import { getMetadataStorage, validate } from 'class-validator';
import { InvalidInputError } from '../errors/invalid-input.error.js';
import type { DtoClass } from './dto-class.js';
import { unsafeJsonProblems } from '../requests/safe-json.js';
import { inputProblems } from './input-problems.js';
import { isPlainObject } from './plain-object.js';
import { toDto } from './to-dto.js';

const LOCATIONS = { body: 'body', query: 'query', param: 'path' } as const;

/** Turns input into its DTO and applies the DTO's rules; the rules live on the DTO classes alone. */
@Injectable()
export class InputValidationPipe implements PipeTransform {
  async transform(value: unknown, { type, metatype }: ArgumentMetadata): Promise<unknown> {
    if (type === 'custom') {
      return value;
    }
    const location = LOCATIONS[type];
    // Bodies were looked through when they were read.
    const unsafe = type === 'body' ? [] : unsafeJsonProblems(value, location);
    if (unsafe.length > 0) {
      throw new InvalidInputError(unsafe);
    }
    if (!isDto(metatype)) {
      return value;
    }
    if (value === undefined || value === null) {
      throw new InvalidInputError([
        { loc: [location], msg: 'A JSON object is required here.', type: 'missing' },
      ]);
    }
    if (!isPlainObject(value)) {
      throw new InvalidInputError([
        { loc: [location], msg: 'Expected an object.', type: 'model_attributes_type' },
      ]);
    }
    const dto = toDto(metatype, value);
    // class-validator also remarks on nested nulls that a rule of ours admits: only problems count.
    const problems = inputProblems(await validate(dto, { forbidUnknownValues: false }), [location]);
    if (problems.length > 0) {
      throw new InvalidInputError(problems);
    }
    return dto;
  }
}

const known = new WeakMap<object, boolean>();

/** A class with at least one rule; anything else (String, Object, an interface) is none of the pipe's business. */
function isDto(metatype: unknown): metatype is DtoClass {
  if (typeof metatype !== 'function') {
    return false;
  }
  let answer = known.get(metatype);
  if (answer === undefined) {
    answer = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false).length > 0;
    known.set(metatype, answer);
  }
  return answer;
}
