import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** An address of something that runs in a sandbox. */
@ApiSchema({ name: 'ExposedUrl' })
export class ExposedUrlDto {
  @ApiProperty({ example: 'AGENT_SERVER' })
  name: string;

  @ApiProperty({
    format: 'uri',
    example: 'https://slipway.example.com/api/v1/sandboxes/3Yv5mQ8hZk2LrTnBx7Wc0d/agent-server',
  })
  url: string;

  @ApiProperty({ type: 'integer', description: 'Port of the address.', example: 443 })
  port: number;
}
