import { ApiProperty, ApiSchema } from '@nestjs/swagger';

@ApiSchema({ name: 'ValidationError' })
class ValidationErrorItemDto {
  @ApiProperty({
    type: [String],
    description: 'Path to the value; starts with body, query, path or header. List indices are strings too.',
    example: ['body', 'max_iterations'],
  })
  loc: string[];

  @ApiProperty({
    description: 'What would be right.',
    example: 'Expected a whole number; this text is not one.',
  })
  msg: string;

  @ApiProperty({ description: 'Machine type of the failure.', example: 'int_parsing' })
  type: string;
}

/** Answer to input that breaks rules; all failures of a body come together. */
@ApiSchema({ name: 'HTTPValidationError' })
export class ValidationErrorDto {
  @ApiProperty({ type: [ValidationErrorItemDto] })
  detail: ValidationErrorItemDto[];
}
