import { ApiProperty } from '@nestjs/swagger';

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
export class ValidationErrorDto {
  @ApiProperty({ type: [ValidationErrorItemDto] })
  detail: ValidationErrorItemDto[];
}
