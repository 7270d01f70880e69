import type { PipeTransform } from '@nestjs/common';
import type { DtoClass } from './dto-class.js';
import { InputValidationPipe } from './validation.pipe.js';

/**
 * For a route whose body may be left out: no body is an object without members. The parameter's declared type must not be
 * the DTO itself (`Partial<Dto>` is fine), or the global pipe asks for a body first.
 */
export class OptionalBodyPipe implements PipeTransform<unknown, Promise<unknown>> {
  private readonly pipe = new InputValidationPipe();

  constructor(private readonly dto: DtoClass) {}

  async transform(value: unknown): Promise<unknown> {
    return this.pipe.transform(value ?? {}, { type: 'body', metatype: this.dto });
  }
}
