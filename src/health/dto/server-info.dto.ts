import { ApiProperty, ApiSchema } from '@nestjs/swagger';

@ApiSchema({ name: 'ServerInfo' })
export class ServerInfoDto {
  @ApiProperty({ example: 'Slipway' })
  title: string;

  @ApiProperty({ description: 'Version of the service itself.', example: '0.1.0' })
  version: string;

  @ApiProperty({ type: 'integer', description: 'Seconds since this replica started.', example: 42 })
  uptime: number;

  @ApiProperty({
    format: 'uuid',
    description: 'Random, another one after each start of this replica. Not the variable `INSTANCE_ID`.',
    example: '9d0c3f7e-52b1-4c1d-8a66-3b0e7f4a2c15',
  })
  instance_id: string;
}
